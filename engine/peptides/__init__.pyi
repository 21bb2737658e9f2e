from . import digestion as digestion
from . import indexes as indexes
from . import known_forms as known_forms
from . import peptide_index as peptide_index
from . import protein_index as protein_index
