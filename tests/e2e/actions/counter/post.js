require('./tell')('post');
