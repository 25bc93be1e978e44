"""Which tables a replica leaves out of its source's changes, by what its status tells."""

from __future__ import annotations

import pytest

from contract.replica_filters import filter_of, left_out

NONE = dict.fromkeys(
    ("Replicate_Do_DB", "Replicate_Ignore_DB", "Replicate_Do_Table", "Replicate_Ignore_Table", "Replicate_Rewrite_DB",
     "Replicate_Wild_Do_Table", "Replicate_Wild_Ignore_Table", "Replicate_Ignore_Server_Ids"), "",
)  # fmt: skip


@pytest.mark.parametrize(
    ("filters", "told"),
    [
        ({}, None),
        ({"Replicate_Do_DB": "other,shop"}, None),
        ({"Replicate_Do_DB": "other,Shop"}, "replicate-do-db=other,Shop"),
        ({"Replicate_Ignore_DB": "Shop"}, "replicate-ignore-db=Shop"),
        ({"Replicate_Wild_Do_Table": "SHOP.%"}, "replicate-wild-do-table=SHOP.%"),
        ({"Replicate_Do_DB": "other"}, "replicate-do-db=other"),
        ({"Replicate_Ignore_DB": "other"}, None),
        ({"Replicate_Ignore_DB": "other,shop"}, "replicate-ignore-db=other,shop"),
        ({"Replicate_Do_Table": "shop.items"}, None),
        ({"Replicate_Do_Table": "shop.others"}, "replicate-do-table=shop.others"),
        ({"Replicate_Ignore_Table": "shop.items"}, "replicate-ignore-table=shop.items"),
        ({"Replicate_Do_Table": "shop.items", "Replicate_Wild_Ignore_Table": "shop.%"}, None),
        ({"Replicate_Do_Table": "shop.others", "Replicate_Wild_Do_Table": "shop.i_ems"}, None),
        ({"Replicate_Wild_Do_Table": "sh%.others"}, "replicate-wild-do-table=sh%.others"),
        ({"Replicate_Wild_Ignore_Table": r"shop.i\_ems"}, None),
        ({"Replicate_Wild_Ignore_Table": "SHOP.%"}, "replicate-wild-ignore-table=SHOP.%"),
        ({"Replicate_Rewrite_DB": "(a,b),(shop,c)"}, "replicate-rewrite-db=(a,b),(shop,c)"),
        ({"Replicate_Rewrite_DB": "a->shop"}, "replicate-rewrite-db=a->shop"),
        ({"Replicate_Rewrite_DB": "(a,b)"}, None),
        ({"Replicate_Ignore_Server_Ids": "3"}, "replicate-ignore-server-ids=3"),
        ({"Replicate_Do_Domain_Ids": "1"}, "replicate-do-domain-ids=1"),
    ],
)
def test_a_filter_that_leaves_the_table_out_is_named(filters: dict[str, str], told: str | None) -> None:
    assert filter_of({**NONE, **filters}, "shop", "items") == told


def test_of_several_channels_those_of_the_streamers_server_count() -> None:
    mine, other = {"Source_Server_Id": 7, **NONE}, {"Source_Server_Id": 8, **NONE, "Replicate_Do_DB": "other"}
    assert left_out([mine, other], 7, "shop", "items") is None
    assert left_out([mine, other], 8, "shop", "items") == "replicate-do-db=other"
    assert left_out([mine, other], 9, "shop", "items") == "replicate-do-db=other", "there is another server in between"
    assert left_out([{"Master_Server_Id": "7"}, other], 7, "shop", "items") is None
