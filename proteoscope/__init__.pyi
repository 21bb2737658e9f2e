from . import engine as engine
from . import gui as gui
from . import kernels as kernels
from . import resources as resources
from .engine.version import __version__ as __version__
