#include "symbol/dwarf/attribute_value.hpp"

namespace ddprof {

namespace {

// DWARF 2 gave DW_FORM_ref_addr the size of an address (version 3, section 7.5.4, made it an offset).
std::uint8_t ref_addr_size(const DwarfEncoding& encoding) {
  return encoding.version <= 2 ? encoding.address_size : encoding.offset_size;
}

// LEB128 numbers of any meaning.
bool is_uleb_form(DwarfForm form) {
  switch (form) {
    case DwarfForm::udata:
    case DwarfForm::ref_udata:
    case DwarfForm::strx:
    case DwarfForm::addrx:
    case DwarfForm::loclistx:
    case DwarfForm::rnglistx:
    case DwarfForm::gnu_addr_index:
    case DwarfForm::gnu_str_index:
      return true;
    default:
      return false;
  }
}

std::uint64_t read_number(ByteCursor& cursor, int size) {
  switch (size) {
    case 0:
      return 1;  // DW_FORM_flag_present
    case 1:
      return cursor.u8();
    case 2:
      return cursor.u16();
    case 3:
      return cursor.u24();
    case 4:
      return cursor.u32();
    case 8:
      return cursor.u64();
    default:
      cursor.skip(static_cast<std::uint64_t>(size));
      return 0;
  }
}

void skip_block(ByteCursor& cursor, DwarfForm form) {
  switch (form) {
    case DwarfForm::block1:
      return cursor.skip(cursor.u8());
    case DwarfForm::block2:
      return cursor.skip(cursor.u16());
    case DwarfForm::block4:
      return cursor.skip(cursor.u32());
    case DwarfForm::block:
    case DwarfForm::exprloc:
      return cursor.skip(cursor.uleb());
    default:
      return cursor.fail();
  }
}

}  // namespace

int fixed_size(DwarfForm form, const DwarfEncoding& encoding) {
  switch (form) {
    case DwarfForm::flag_present:
    case DwarfForm::implicit_const:
      return 0;
    case DwarfForm::data1:
    case DwarfForm::flag:
    case DwarfForm::ref1:
    case DwarfForm::strx1:
    case DwarfForm::addrx1:
      return 1;
    case DwarfForm::data2:
    case DwarfForm::ref2:
    case DwarfForm::strx2:
    case DwarfForm::addrx2:
      return 2;
    case DwarfForm::strx3:
    case DwarfForm::addrx3:
      return 3;
    case DwarfForm::data4:
    case DwarfForm::ref4:
    case DwarfForm::ref_sup4:
    case DwarfForm::strx4:
    case DwarfForm::addrx4:
      return 4;
    case DwarfForm::data8:
    case DwarfForm::ref8:
    case DwarfForm::ref_sup8:
    case DwarfForm::ref_sig8:
      return 8;
    case DwarfForm::data16:
      return 16;
    case DwarfForm::addr:
      return encoding.address_size;
    case DwarfForm::ref_addr:
      return ref_addr_size(encoding);
    case DwarfForm::sec_offset:
    case DwarfForm::strp:
    case DwarfForm::line_strp:
    case DwarfForm::strp_sup:
    case DwarfForm::gnu_ref_alt:
    case DwarfForm::gnu_strp_alt:
      return encoding.offset_size;
    default:
      return -1;
  }
}

AttributeValue read_value(ByteCursor& cursor, DwarfForm form, const DwarfEncoding& encoding,
                          std::int64_t implicit) {
  if (form == DwarfForm::indirect) {
    form = DwarfForm{static_cast<std::uint16_t>(cursor.uleb())};
    // Neither of them says anything here, and the first would let bytes nest for ever.
    if (form == DwarfForm::indirect || form == DwarfForm::implicit_const) cursor.fail();
  }
  AttributeValue value{form, 0, {}};
  if (form == DwarfForm::implicit_const) {
    value.number = static_cast<std::uint64_t>(implicit);
  } else if (const int size = fixed_size(form, encoding); size >= 0) {
    value.number = read_number(cursor, size);
  } else if (is_uleb_form(form)) {
    value.number = cursor.uleb();
  } else if (form == DwarfForm::sdata) {
    value.number = static_cast<std::uint64_t>(cursor.sleb());
  } else if (form == DwarfForm::string) {
    value.text = cursor.string();
  } else {
    skip_block(cursor, form);
  }
  return value;
}

bool is_address_form(DwarfForm form) {
  switch (form) {
    case DwarfForm::addr:
    case DwarfForm::addrx:
    case DwarfForm::addrx1:
    case DwarfForm::addrx2:
    case DwarfForm::addrx3:
    case DwarfForm::addrx4:
    case DwarfForm::gnu_addr_index:
      return true;
    default:
      return false;
  }
}

}  // namespace ddprof
