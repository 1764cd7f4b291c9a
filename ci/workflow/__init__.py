"""What does a workflow file mean?"""
