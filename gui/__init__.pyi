from . import application as application
from . import conversion_dialog as conversion_dialog
from . import database_dialog as database_dialog
from . import launch as launch
from . import prediction_dialog as prediction_dialog
