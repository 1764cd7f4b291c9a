"""The procedures of `ping.v1` and `runner.v1`, one file a verb, for the runners of Forgejo and of Gitea."""
