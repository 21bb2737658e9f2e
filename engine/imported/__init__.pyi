from . import compilation as compilation
from . import results as results
from .entry import IMPORT as IMPORT
