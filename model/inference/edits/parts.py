"""Parts: what of a network edits can name, and sentences where they name what is not there."""

from collections.abc import Sequence
from itertools import product

from model.errors import UnknownHead, UnknownSite, phrase
from model.inference.edits.attention_edits import Notes, Place
from model.inference.edits.strips import Strips
from model.inference.interventions import sites
from model.spec.edits import AtSites, Edit, SkipLayer, SkipSublayer, Token
from model.spec.external import AnySpec, ForeignSpec
from model.spec.network import WITHOUT_FEED_FORWARD
from model.trace.types import Site


class Parts:
    """The sites, layers and tokens of one run."""

    def __init__(self, spec: AnySpec, strips: Strips, notes: Notes) -> None:
        self._spec, self._strips, self._notes = spec, strips, notes
        self.sites = sites(spec)

    def place(self, site: Site) -> Place:
        """A site with all that its functions need."""
        rule = getattr(self._spec.stacks[site.stack].attention, "empty_rows", "uniform")
        return Place(site, self.sites[site], self._strips, self._notes, rule)

    def rows_of_source(self, site: Site) -> bool:
        """Whether a row of the site is a source position and not a token of its strip (`MemoryLayer`)."""
        return site.stack == "decoder" and getattr(self._spec.decoder, "wiring", "") == "memory"

    def of(self, edit: AtSites) -> list[Site]:
        """The sites that an edit is at, all of which have its heads.

        Raises:
            UnknownSite, UnknownHead, BadEdit: there is no such site or head.
        """
        if edit.site:
            self.check_site(edit.site)
        found = [site for site in self.sites if edit.at_site(str(site))]
        if not found:
            raise edit.refuse(
                phrase("this network has no such attention layer. Available: {names}", names=", ".join(map(str, self.sites)))
            )
        for site, head in product(found, edit.head):
            self.check_head(site, head)
        return found

    def check_tokens(self, edit: AtSites, query: Sequence[Token], key: Sequence[Token]) -> None:
        """Refuses tokens that no strip of the edit's sites can have."""
        of = self.of(edit)
        if query and any(self.rows_of_source(site) for site in of):
            raise edit.refuse(phrase("this decoder computes a row for each source position, so its rows are not those of tokens"))
        self._strips.check(edit, query, tuple(dict.fromkeys(map(self._strips.queries, of))))
        self._strips.check(edit, key, tuple(dict.fromkeys(map(self._strips.keys, of))))

    def check_head(self, site: Site, head: int) -> None:
        """Raises UnknownHead for a head that a site does not have."""
        if head >= self.sites[site]:
            raise UnknownHead(asked=head, site=site, last=self.sites[site] - 1)

    def check_site(self, site: str) -> None:
        """Raises UnknownSite for a site that the network does not have."""
        if Site.parse(site) not in self.sites:
            raise UnknownSite(asked=site, there=", ".join(map(str, self.sites)))

    def check_stack(self, edit: Edit, stack: str) -> None:
        """Refuses a stack that the network does not have."""
        if stack not in self._spec.stacks:
            raise edit.refuse(
                phrase("this network has no {stack}. Available: {names}", stack=stack, names=", ".join(self._spec.stacks))
            )

    def check_layer(self, edit: Edit, stack: str, layer: int) -> None:
        """Refuses a layer that a stack does not have."""
        self.check_stack(edit, stack)
        if not 0 <= layer < (layers := self._spec.stacks[stack].layers):
            raise edit.refuse(phrase("{stack} has the layers 0 to {last}", stack=stack, last=layers - 1))

    def skipped(self, edit: SkipLayer) -> list[tuple[str, str]]:
        """The output of a layer in each pass, and the value that is its input, by their names."""
        self.check_layer(edit, edit.stack, edit.layer)
        spec, found = self._spec.stacks[edit.stack], list[tuple[str, str]]()
        for pass_ in range(spec.passes):
            number = pass_ * spec.layers + edit.layer - 1
            before = (
                f"hidden/{edit.stack}.{number // spec.layers}.{number % spec.layers}" if number >= 0 else f"embedded/{edit.stack}"
            )
            found.append((f"hidden/{edit.stack}.{pass_}.{edit.layer}", before))
        return found

    def sublayer(self, edit: SkipSublayer) -> str:
        """The name of what a sublayer adds to the stream. Other programs expose it of attention alone."""
        stack, *_numbers, kind = edit.at.split(".")
        if kind != "feed_forward":
            self.check_site(edit.at)
            return f"attention/{edit.at}/output"
        spec = self._spec.stacks.get(stack)
        layers = (
            product(range(spec.passes), range(spec.layers)) if spec is not None and spec.wiring not in WITHOUT_FEED_FORWARD else ()
        )
        places = [f"{stack}.{pass_}.{layer}.feed_forward" for pass_, layer in layers]
        if edit.at not in places:
            offered = [str(site) for site in self.sites] if isinstance(self._spec, ForeignSpec) else places
            there = phrase("this network has no such sublayer. Available: {names}", names=", ".join(offered))
            raise edit.refuse(there if offered else phrase("this network has no such sublayer"))
        return f"stages/{edit.at}/output"

    def layers(self, edit: Edit, stack: str, chosen: Sequence[int]) -> list[str]:
        """The outputs of some layers of a stack in each pass, by their names; of all where none is chosen."""
        for layer in chosen:
            self.check_layer(edit, stack, layer)
        spec = self._spec.stacks[stack]
        return [f"hidden/{stack}.{p}.{n}" for p, n in product(range(spec.passes), chosen or range(spec.layers))]
