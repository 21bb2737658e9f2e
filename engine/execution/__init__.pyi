from . import device_lookup as device_lookup
from . import devices as devices
from . import executor as executor
from . import heap as heap
from . import libraries as libraries
from . import precompile as precompile
from . import resources as resources
