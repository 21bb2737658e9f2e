"""Search spectral libraries: the reference spectrum that each spectrum resembles most, unmodified or shifted by a difference of mass."""
