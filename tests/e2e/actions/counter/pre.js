require('./tell')('pre');
