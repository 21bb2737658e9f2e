from . import workers_dialog as workers_dialog
