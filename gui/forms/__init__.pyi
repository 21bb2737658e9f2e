from . import field as field
from . import parameter_form as parameter_form
from . import search_form as search_form
from . import workers_dialog as workers_dialog
