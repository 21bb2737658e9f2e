"""Search for proteins with the same fold. Its entry comes first, which makes its kinds of work known."""

from proteoscope.engine.structure_search.entry import STRUCTURE_SEARCH as STRUCTURE_SEARCH
