"""The page Survey: `page` draws a survey, `making` makes one in the background while its visitor watches."""
