"""How is a workflow file read, checked and turned into plain values?"""
