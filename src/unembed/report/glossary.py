"""The words that a report uses, each explained in a sentence or two."""

GLOSSARY = {
    "Embedding, vector": "A list of numbers that an encoder makes of a text, so that texts of similar meaning can be "
    "found.",
    "Encoder": "The model that makes vectors of texts, also called embedding model.",
    "Inverter": "The model that writes a text that fits a vector. It never saw the texts of this database.",
    "Inversion": "Recovering a text, or parts of it, from its vector.",
    "Blind attacker": "Somebody who has a copy of the vectors, knows the encoder and has an inverter, but never runs "
    "the encoder.",
    "Guided attacker": "Somebody who can also run the encoder, and compares the vectors of guesses with the stolen "
    "one.",
    "Passage": "The whole text, or 24 words of it in a row if it is longer.",
    "Content words": "Words that carry meaning: all but articles, prepositions and the like. Forms of a word count as "
    "one.",
    "Read back in substance": "At least half of the content words of a passage came back.",
    "Given back": "A recovered text has the item word for word and digit for digit.",
    "Threshold": "The share of texts that may be read back before they count as exposed: unembed audit --fail-over.",
    "95% interval": "The range in which the figure for all vectors lies, in 95 of 100 such samples.",
    "Measured, estimated": "Measured: compared with the stored texts. Estimated: the texts are not known, so the "
    "figure comes from known texts whose recoveries look alike.",
    "Token": "A word or a piece of one, as the encoder reads it.",
    "Special categories": "Data on health, beliefs, origin, sexuality and the like, which Art. 9 GDPR protects most.",
    "Quantised": "Stored with fewer bits than it was made with.",
}
"""Each term, and what it means."""
