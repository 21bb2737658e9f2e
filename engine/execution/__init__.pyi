from . import cards as cards
from . import compilation as compilation
from . import devices as devices
from . import executor as executor
from . import libraries as libraries
from . import resources as resources
from . import threads as threads
