// A model runner whose engine prints what it was given, and says why it dies.
process.on('message', () => {
  process.stderr.write('parse: error parsing grammar\nroot ::= "SECRET"\npostern: the model engine failed.\n');
  process.stderr.write(`/build/ggml.c:12: GGML_ASSERT(n > 0) failed ${'x'.repeat(2000)}\n`, () => process.exit(1));
});
