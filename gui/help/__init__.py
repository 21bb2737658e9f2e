"""Help: the manual, the glossary, shortcuts, a tour, reports of faults, how to cite, samples to try."""
