require('./tell')('main');
