from . import help_window as help_window
from . import text_dialogs as text_dialogs
