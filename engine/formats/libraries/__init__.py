"""Libraries of spectra: the readers and writers of their formats."""
