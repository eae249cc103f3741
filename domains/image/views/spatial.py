"""Operations on batches of images that move pixels, each image with its own parameter."""

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from contrastbench.domains.image.views.colour import index_range


def to_float(images: Tensor) -> Tensor:
    """Float32 in [0, 1] of uint8."""
    return images.float().div_(255)


def crop(images: Tensor, boxes: Tensor, size: int, flipped: Tensor) -> Tensor:
    """(N, 3, size, size) float32 in [0, 1]: a resized box of each image, some mirrored.

    Boxes are (N, 4) top, left, height, width in pixels.
    """
    height, width = images.shape[-2:]
    top, left, tall, wide = boxes.unbind(1)
    if height == width:
        start, length = boxes.T.reshape(2, -1)
        turned = torch.cat([torch.zeros_like(flipped), flipped])
        rows, columns = resize_weights(start, length, width, size, turned).chunk(2)
    else:
        rows = resize_weights(top, tall, height, size)
        columns = resize_weights(left, wide, width, size, flipped)
    return resample_separable(images, rows, columns)


def warp(images: Tensor, maps: Tensor, size: int, edges: str) -> Tensor:
    """(N, 3, size, size) float32 in [0, 1]: each uint8 image seen through a map, bilinearly.

    Maps are (N, 2, 3) affine, from a view's square [-1, 1] to that of its image. What lies beyond
    its edges is torch's `padding_mode`.
    """
    places = index_range(size, images.device, 0.5) * (2 / size) - 1
    across, down, start = maps.unsqueeze(3).split(1, dim=2)
    grid = torch.addcmul(torch.addcmul(start, down, places[:, None]), across, places)
    return grid_sample(
        to_float(images), grid.permute(0, 2, 3, 1), padding_mode=edges, align_corners=False
    )


def resize_weights(
    start: Tensor, length: Tensor, pixels: int, size: int, flipped: Tensor | None = None
) -> Tensor:
    """(N, size, pixels) weights of a line's pixels in its resized part: triangles.

    Parts have (N,) starts and lengths, in whole pixels; some are turned round.
    """
    step = length / size
    new = index_range(size, start.device, 0.5)
    centres = torch.addcmul(start[:, None], step[:, None], new)
    if flipped is not None:
        centres = torch.where(flipped[:, None], centres.flip(1), centres)
    old = index_range(pixels, start.device, 0.5)
    first, last = (start + 0.5)[:, None], (start + length - 0.5)[:, None]
    if pixels <= size:  # nothing is made smaller: two neighbours share each new pixel
        return (old - centres.clamp(first, last)[..., None]).abs_().neg_().add_(1).relu_()
    share = 1 - (old - centres[..., None]).abs_() / step.clamp(min=1).view(-1, 1, 1)
    inside = (old >= first) & (old <= last)
    share = share.relu_().mul_(inside[:, None])
    return share.div_(share.sum(dim=2, keepdim=True))


def resample_separable(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """(N, 3, h, w) each image between its two matrices: rows @ image @ columns.T."""
    n, colours, height, width = images.shape
    x = torch.bmm(images.view(n, colours * height, width), columns.transpose(1, 2))
    return rows[:, None] @ x.view(n, colours, height, columns.shape[1])


def blur(images: Tensor, sigma: Tensor) -> Tensor:
    """SimCLR's Gaussian blur, its kernel a tenth of the image, which is mirrored at borders.

    The images are square, (N, 3, S, S), and sigma is (N,) in pixels.
    """
    size = images.shape[-1]
    radius = max(1, size // 20)
    offsets = torch.arange(-radius, radius + 1, device=images.device)
    kernel = (-0.5 * (offsets / sigma[:, None]) ** 2).softmax(dim=1)
    source = torch.arange(size, device=images.device)[:, None] + offsets
    source = size - 1 - (size - 1 - source.abs()).abs()  # mirrored at both borders
    share = kernel.new_zeros(len(sigma), size, size)
    share.scatter_add_(2, source.expand(len(sigma), -1, -1), kernel[:, None].expand(-1, size, -1))
    return resample_separable(images, share, share)


def erase(images: Tensor, boxes: Tensor, noise: Tensor) -> Tensor:
    """Each image with the noise in its box (N, 4: top, left, height, width), which may be empty."""
    height, width = images.shape[-2:]
    start, length = boxes.unsqueeze(2).split(2, dim=1)
    pixels = index_range(max(height, width), images.device)
    rows, columns = ((pixels >= start) & (pixels < start + length)).unbind(1)
    inside = rows[:, None, :height, None] & columns[:, None, None, :width]
    return torch.lerp(images, noise, inside.float())
