from . import genome as genome
from . import mzidentml as mzidentml
from . import pepxml as pepxml
from . import perseus as perseus
from . import pin as pin
from . import tables as tables
