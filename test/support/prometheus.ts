/** Prometheus' text format, as much of it as is needed to read our own: every sample by its name and labels. */
export function parseMetrics(text: string): ReadonlyMap<string, number> {
  const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    samples.map((line) => {
      const [, name, labels = '', value] = /^([a-z_]\w*)(?:\{(.*)\})? (\S+)$/i.exec(line) ?? [];
      if (name === undefined) throw new Error(`not a sample: ${line}`);
      return [
        `${name}{${labels
          .split(/,(?=\w+=")/)
          .toSorted()
          .join(',')}}`,
        Number(value),
      ];
    }),
  );
}
