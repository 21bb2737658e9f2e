from . import field as field
from . import parameter_form as parameter_form
from . import preset_choice as preset_choice
from . import search_form as search_form
from . import workers_dialog as workers_dialog
