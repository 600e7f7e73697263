"""An engine for other machines: `http` asks and answers, `cluster` starts several processes behind one address."""
