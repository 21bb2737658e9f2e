from . import driver as driver
from . import management as management
