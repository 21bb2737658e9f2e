from . import compilation as compilation
from .entry import IDENTIFICATION as IDENTIFICATION
