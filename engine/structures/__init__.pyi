from . import building as building
from . import chain_references as chain_references
from . import chains as chains
from . import counting as counting
from . import outputs as outputs
from . import pdb_text as pdb_text
from . import reading as reading
from . import superposition as superposition
