"""A loss whose graphs train in float64, where ranks and one process differ by rounding alone.

A file of its own, as a user's loss has. Its process ends where ENDING says so, see `ending`.
"""

from contrastbench.domains.graph.domain import GraphDomain
from ending import Ending
from shared_trainings import in_float32, in_float64

make, evaluate = GraphDomain.model, GraphDomain.evaluate
GraphDomain.model = lambda domain: in_float64(make(domain))
GraphDomain.evaluate = lambda domain, model: evaluate(domain, in_float32(model))


class Widened(Ending):
    """InfoNCE whose graphs train in float64."""
