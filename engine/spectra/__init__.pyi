from . import selection as selection
from . import spectrum_index as spectrum_index
