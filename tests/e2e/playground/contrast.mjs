// Finds text that is hard to read; it runs in the page, so it may use nothing from outside itself.

/** Texts whose contrast with what is behind them is below 4.5 to 1. */
export function findFaint() {
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const light = (color) => {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = color;
    pen.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
    const linear = [r, g, b].map((each) => (each / 255 <= 0.03928 ? each / 255 / 12.92 : ((each / 255 + 0.055) / 1.055) ** 2.4));
    return { value: 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2], isSolid: a === 255 };
  };
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const { value, isSolid } = light(getComputedStyle(each).backgroundColor);
      if (isSolid) return value;
    }
    return 1;
  };
  const texts = [...document.querySelectorAll("body *")].filter((each) =>
    each.checkVisibility() && !each.matches(":disabled") && [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
  return texts.flatMap((each) => {
    const style = getComputedStyle(each);
    const [low, high] = [light(style.color).value, behind(each)].sort((a, b) => a - b);
    const contrast = (high + 0.05) / (low + 0.05);
    const isFaint = contrast < 4.5 || Number(style.opacity) < 1;
    return isFaint ? [`${each.className || each.tagName}: ${contrast.toFixed(2)}`] : [];
  });
}
