"""The number of an idXML hit that is used as the ranking score."""

from __future__ import annotations

from proteoscope.engine.imported.reading import read_identifications

HIT = (
    '<?xml version="1.0"?><IdXML><IdentificationRun><ProteinIdentification/>'
    '<PeptideIdentification score_type="special" higher_score_better="true">'
    '<PeptideHit sequence="PEPTIDEK" score="7" charge="2"><UserParam name="other" value="7"/>'
    '<UserParam name="third" value="3"/></PeptideHit>'
    "</PeptideIdentification></IdentificationRun></IdXML>"
)


def test_idxml_user_parameter_equal_to_the_score_is_ignored(tmp_path):
    path = tmp_path / "x.idXML"
    path.write_text(HIT)
    scores = {name: values.tolist() for name, values in read_identifications([path]).scores.items()}
    assert scores == {"score_other": [7.0], "score_third": [3.0], "score_main": [7.0]}
