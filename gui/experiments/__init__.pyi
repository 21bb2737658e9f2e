from . import add_dialog as add_dialog
from . import run_manager as run_manager
