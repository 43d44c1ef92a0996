// SPDX-License-Identifier: MIT
// Unicode's names of categories, properties and scripts, as far as ECMAScript's \p{...} knows them.

/** General categories, in the order of src/grammar/properties.c. */
export const CATEGORIES = [
  'Lu',
  'Ll',
  'Lt',
  'Lm',
  'Lo',
  'Mn',
  'Mc',
  'Me',
  'Nd',
  'Nl',
  'No',
  'Pc',
  'Pd',
  'Ps',
  'Pe',
  'Pi',
  'Pf',
  'Po',
  'Sm',
  'Sc',
  'Sk',
  'So',
  'Zs',
  'Zl',
  'Zp',
  'Cc',
  'Cf',
  'Cs',
  'Co',
  'Cn',
];

const rows = (text) => text.trim().split(/\s+/).map((row) => row.split('/'));

/** Binary properties; alternative names follow the first. */
export const PROPERTIES = rows(`
  Uppercase/Upper Lowercase/Lower Cased Alphabetic/Alpha ID_Start/IDS ID_Continue/IDC XID_Start/XIDS XID_Continue/XIDC
  Changes_When_Lowercased/CWL Changes_When_Casefolded/CWCF Changes_When_NFKC_Casefolded/CWKCF Changes_When_Uppercased/CWU Changes_When_Titlecased/CWT
  Changes_When_Casemapped/CWCM Grapheme_Extend/Gr_Ext Grapheme_Base/Gr_Base Case_Ignorable/CI Diacritic/Dia Extender/Ext Math Dash
  Emoji_Presentation/EPres Emoji Extended_Pictographic/ExtPict Emoji_Modifier/EMod Emoji_Modifier_Base/EBase Emoji_Component/EComp Regional_Indicator/RI
  Sentence_Terminal/STerm Terminal_Punctuation/Term Quotation_Mark/QMark Bidi_Mirrored/Bidi_M Bidi_Control/Bidi_C Soft_Dotted/SD
  ASCII_Hex_Digit/AHex Hex_Digit/Hex Unified_Ideograph/UIdeo Ideographic/Ideo Radical IDS_Binary_Operator/IDSB IDS_Trinary_Operator/IDST
  Default_Ignorable_Code_Point/DI Deprecated/Dep Join_Control/Join_C Logical_Order_Exception/LOE Noncharacter_Code_Point/NChar
  Pattern_Syntax/Pat_Syn Pattern_White_Space/Pat_WS White_Space/space Variation_Selector/VS
`);

/** Scripts; the short name comes first. */
export const SCRIPTS = rows(`
  Adlm/Adlam Aghb/Caucasian_Albanian Ahom/Ahom Arab/Arabic Armi/Imperial_Aramaic Armn/Armenian Avst/Avestan Bali/Balinese Bamu/Bamum
  Bass/Bassa_Vah Batk/Batak Beng/Bengali Bhks/Bhaiksuki Bopo/Bopomofo Brah/Brahmi Brai/Braille Bugi/Buginese Buhd/Buhid Cakm/Chakma
  Cans/Canadian_Aboriginal Cari/Carian Cham/Cham Cher/Cherokee Chrs/Chorasmian Copt/Coptic/Qaac Cpmn/Cypro_Minoan Cprt/Cypriot Cyrl/Cyrillic
  Deva/Devanagari Diak/Dives_Akuru Dogr/Dogra Dsrt/Deseret Dupl/Duployan Egyp/Egyptian_Hieroglyphs Elba/Elbasan Elym/Elymaic Ethi/Ethiopic
  Geor/Georgian Glag/Glagolitic Gong/Gunjala_Gondi Gonm/Masaram_Gondi Goth/Gothic Gran/Grantha Grek/Greek Gujr/Gujarati Guru/Gurmukhi Hang/Hangul
  Hani/Han Hano/Hanunoo Hatr/Hatran Hebr/Hebrew Hira/Hiragana Hluw/Anatolian_Hieroglyphs Hmng/Pahawh_Hmong Hmnp/Nyiakeng_Puachue_Hmong
  Hung/Old_Hungarian Ital/Old_Italic Java/Javanese Kali/Kayah_Li Kana/Katakana Khar/Kharoshthi Khmr/Khmer Khoj/Khojki Kits/Khitan_Small_Script
  Knda/Kannada Kthi/Kaithi Lana/Tai_Tham Laoo/Lao Latn/Latin Lepc/Lepcha Limb/Limbu Lina/Linear_A Linb/Linear_B Lisu/Lisu Lyci/Lycian Lydi/Lydian
  Mahj/Mahajani Maka/Makasar Mand/Mandaic Mani/Manichaean Marc/Marchen Medf/Medefaidrin Mend/Mende_Kikakui Merc/Meroitic_Cursive
  Mero/Meroitic_Hieroglyphs Mlym/Malayalam Modi/Modi Mong/Mongolian Mroo/Mro Mtei/Meetei_Mayek Mult/Multani Mymr/Myanmar Nand/Nandinagari
  Narb/Old_North_Arabian Nbat/Nabataean Newa/Newa Nkoo/Nko Nshu/Nushu Ogam/Ogham Olck/Ol_Chiki Orkh/Old_Turkic Orya/Oriya Osge/Osage Osma/Osmanya
  Ougr/Old_Uyghur Palm/Palmyrene Pauc/Pau_Cin_Hau Perm/Old_Permic Phag/Phags_Pa Phli/Inscriptional_Pahlavi Phlp/Psalter_Pahlavi Phnx/Phoenician
  Plrd/Miao Prti/Inscriptional_Parthian Rjng/Rejang Rohg/Hanifi_Rohingya Runr/Runic Samr/Samaritan Sarb/Old_South_Arabian Saur/Saurashtra
  Sgnw/SignWriting Shaw/Shavian Shrd/Sharada Sidd/Siddham Sind/Khudawadi Sinh/Sinhala Sogd/Sogdian Sogo/Old_Sogdian Sora/Sora_Sompeng Soyo/Soyombo
  Sund/Sundanese Sylo/Syloti_Nagri Syrc/Syriac Tagb/Tagbanwa Takr/Takri Tale/Tai_Le Talu/New_Tai_Lue Taml/Tamil Tang/Tangut Tavt/Tai_Viet
  Telu/Telugu Tfng/Tifinagh Tglg/Tagalog Thaa/Thaana Thai/Thai Tibt/Tibetan Tirh/Tirhuta Tnsa/Tangsa Toto/Toto Ugar/Ugaritic Vaii/Vai
  Vith/Vithkuqi Wara/Warang_Citi Wcho/Wancho Xpeo/Old_Persian Xsux/Cuneiform Yezi/Yezidi Yiii/Yi Zanb/Zanabazar_Square Zinh/Inherited/Qaai
  Zyyy/Common Zzzz/Unknown Kawi/Kawi Nagm/Nag_Mundari Gara/Garay Gukh/Gurung_Khema Krai/Kirat_Rai Onao/Ol_Onal Sunu/Sunuwar Todr/Todhri
  Tutg/Tulu_Tigalari Berf/Beria_Erfe Sidt/Sidetic Tayo/Tai_Yo Tols/Tolong_Siki
`);
