from . import hit_chains as hit_chains
from . import structures as structures
from .entry import STRUCTURE_SEARCH as STRUCTURE_SEARCH
