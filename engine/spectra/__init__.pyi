from . import selection as selection
