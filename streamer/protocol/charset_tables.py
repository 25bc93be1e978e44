"""What Python's codecs do not know, as MySQL and MariaDB convert it: whole single-byte character sets, one character
a byte, and codes of multi-byte ones."""

from __future__ import annotations

ASCII = "".join(map(chr, range(128)))
C1 = "".join(map(chr, range(128, 160)))  # the control characters beyond ASCII
LATIN1 = (
    ASCII + "€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ"
    "\xa0¡¢£¤¥¦§¨©ª«¬\xad®¯°±²³´µ¶·¸¹º»¼½¾¿"
    "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞß"
    "àáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ"
)
DEC8 = (
    ASCII + C1 + "\xa0¡¢£?¥?§¤©ª«????°±²³?µ¶·?¹º»¼½?¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏ?ÑÒÓÔÕÖŒØÙÚÛÜŸ?ßàáâãäåæçèéêëìíîï?ñòóôõöœøùúûüÿ??"
)
SWE7 = "".join(map(chr, range(64))) + "ÉABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÅÜ_éabcdefghijklmnopqrstuvwxyzäöåü?" + "?" * 128
ARMSCII8 = (
    ASCII + C1 + "\xa0❁§։)(»«—.՝,-՟…՜՛՞ԱաԲբԳգԴդԵեԶզԷէԸըԹթԺժԻիԼլԽխԾծԿկՀհՁձՂղՃճՄմՅյՆնՇշՈոՉչՊպՋջՌռՍսՎվՏտՐրՑցՒւՓփՔքՕօՖֆ’'"
)
KEYBCS2 = (
    ASCII + "ČüéďäĎŤčěĚĹÍľĺÄÁÉžŽôöÓůÚýÖÜŠĽÝŘť"
    "áíóúňŇŮÔšřŕŔ¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐"
    "└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀"
    "αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\xa0"
)
GEOSTD8 = (
    ASCII + "€?‚?„…†‡?‰?‹?????‘’“”•–—???›????"
    "\xa0¡¢£¤¥¦§¨©ª«¬\xad®¯°±²³´µ¶·¸¹º»¼½¾¿"
    "აბგდევზჱთიკლმნჲოპჟრსტჳუფქღყშჩცძწ"
    "ჭხჴჯჰჵ???????????????????????№??"
)

ROW = range(0xA1, 0xFF)  # the second bytes of an EUC row


def _row(lead: bytes, chars: str) -> dict[bytes, str]:
    return {lead + bytes((byte,)): char for byte, char in zip(ROW, chars, strict=False)}


def _private() -> dict[bytes, str]:
    """Ten rows of each plane that are the user's own."""
    rows = [prefix + bytes((byte,)) for prefix in (b"", b"\x8f") for byte in range(0xF5, 0xFF)]
    codes = [row + bytes((byte,)) for row in rows for byte in ROW]
    return {code: chr(0xE000 + n) for n, code in enumerate(codes)}


NEC = (
    "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳ⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩ?㍉㌔㌢㍍㌘㌧㌃㌶㍑㍗㌍㌦㌣㌫㍊㌻㎜㎝㎞㎎㎏"
    "㏄㎡????????㍻〝〟№㏍℡㊤㊥㊦㊧㊨㈱㈲㈹㍾㍽㍼≒≡∫∮∑√⊥∠∟⊿∵∩∪"
)
IBM = (
    "ⅢⅣⅤⅥⅦⅧⅨⅩ＇＂㈱№℡炻仼僴凬匇匤﨎咊坙﨏塚增寬峵嵓﨑德悅愠敎昻晥晴朗栁﨓﨔橫櫢淸淲瀨凞猪甁皂皞益礰"
    "礼神祥福竧靖精綠緖羽荢﨟薰蘒﨡蠇諸譿賴赶﨣﨤逸郞都鄕﨧﨨閒隆﨩霻靍靑飯飼館馞髙魲鶴黑"
)
UJIS = _private() | {b"\x8e\xa0": "??"}
EUCJPMS = (
    UJIS
    | {b"\x8f\xa2\xb7": "～"}
    | _row(b"\xad", NEC)
    | dict(zip((b"\x8f\xf3" + bytes((byte,)) for byte in range(0xF3, 0xFF)), "ⅰⅱⅲⅳⅴⅵⅶⅷⅸⅹⅠⅡ", strict=True))
    | _row(b"\x8f\xf4", IBM)
)
BIG5 = dict.fromkeys(map(bytes.fromhex, ("a15a", "a1c3", "a1c5", "a1fe", "a240", "a2cc", "a2ce")), "\ufffd")
BIG5 |= dict(zip((bytes((0xF9, byte)) for byte in range(0xD6, 0xDD)), "碁銹裏墻恒粧嫺", strict=True))
