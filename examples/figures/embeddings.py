"""Embeddings by class, as t-SNE draws them (AttentionNCE, Figure 4).

    python examples/figures/embeddings.py OUT.svg --domain graph --dataset MUTAG --data-root DATA

The paper's claim: AttentionNCE separates classes earlier and better than InfoNCE. The share of
neighbours that are of a point's own class is printed, because t-SNE flatters.
"""

from common import arguments, followed, panels, save
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors

LOSSES = ["infonce(temperature=0.5)", "attentionnce(temperature=0.5, d_pos=1, d_neg=1)"]
MOST = 1000  # points


def purity(x, y, neighbours=10):
    """Return the mean share of each row's neighbours that have its class."""
    near = NearestNeighbors(n_neighbors=min(neighbours, len(x) - 1)).fit(x).kneighbors()[1]
    return (y[near] == y[:, None]).mean()


def main(given=None):
    """Draw the embeddings after some epochs and after more, with each loss."""
    args = arguments(__doc__, "image", LOSSES, [("epochs", [2, 25])], given)
    epochs = [1, 2] if args.tiny else args.epochs
    drawing, axes = panels(len(args.losses) * len(epochs), args.title, columns=len(epochs))
    cells = [(loss, epoch) for loss in args.losses for epoch in epochs]
    for one, (loss, epoch) in zip(axes, cells, strict=True):
        opened, model, _ = followed(args, loss, epochs=epoch)
        embedded = opened.embeddings(model)
        x, y = embedded.x[:MOST].cpu().numpy(), embedded.y[:MOST].cpu().numpy()
        share = purity(x, y)
        points = TSNE(perplexity=min(30, len(x) // 4), random_state=0).fit_transform(x)
        one.scatter(*points.T, c=y, s=3, cmap="tab10", rasterized=True)
        one.set(
            xticks=[], yticks=[], title=f"{loss.name}, epoch {epoch}: {share:.0%} of neighbours"
        )
        print(f"{loss.label}, epoch {epoch}: {share:.1%} of neighbours are of the class")
    save(drawing, args.out)


if __name__ == "__main__":
    main()
