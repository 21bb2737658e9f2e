from . import cards as cards
from . import compilation as compilation
from . import devices as devices
from . import libraries as libraries
from . import threads as threads
