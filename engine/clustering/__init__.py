"""Groups of spectra, and explanations of the unidentified. Its entry comes first, which makes its kinds of work known."""

from proteoscope.engine.clustering.entry import CLUSTERING as CLUSTERING
