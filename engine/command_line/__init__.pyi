from . import main as main
from . import search as search
