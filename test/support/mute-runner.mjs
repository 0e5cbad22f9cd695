// A model runner that never has its model loaded.
process.on('message', () => undefined);
process.on('disconnect', () => process.exit(0));
