"""Transport of scenes to the browser: packed bytes, parts fetched by hash, pooled overviews, and the texts of drawings."""
