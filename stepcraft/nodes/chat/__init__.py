"""The steps of the chat: what was asked, which method answers it, and its answer as a message."""
