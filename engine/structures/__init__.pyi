from . import building as building
from . import chains as chains
from . import counting as counting
from . import outputs as outputs
from . import pdb_text as pdb_text
from . import places as places
from . import reading as reading
from . import superposition as superposition
