"""Gradient boosting: what trees make of the rows, a reference for linear probes."""

from sklearn.ensemble import HistGradientBoostingClassifier

from contrastbench.domains.scoring.classifiers import Classifier, Labelled, decisions


def boosting(train: Labelled, validation: Labelled | None = None, seed: int = 0) -> Classifier:
    """scikit-learn's histogram gradient boosting with its defaults."""
    model = HistGradientBoostingClassifier(random_state=seed).fit(
        train.x.cpu().numpy(), train.y.cpu().numpy()
    )
    return Classifier(lambda x: decisions(model, x))
