echo "hello $1 ($OUTER)"
