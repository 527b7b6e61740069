# Writes man pages of section 3 from zklock.h: one for each function and type, and zklock.3 with what is at the top of the header.
#
#   awk -v folder=FOLDER -v version=VERSION -f man.awk zklock.h

function escaped(text) {
  gsub(/\\/, "\\e", text)
  gsub(/-/, "\\-", text)
  return text
}

# Prose: names of the library are bold, and a line is not taken for a request.
function prose(text) {
  text = escaped(text)
  gsub(/zklock_[a-z0-9_]+|ZKLOCK_[A-Z0-9_]+/, "\\fB&\\fR", text)
  return text ~ /^[.']/ ? "\\&" text : text
}

function code(text) {
  text = escaped(text)
  return text ~ /^[.']/ ? "\\&" text : text
}

# A paragraph does not begin right after a heading.
function put(line) {
  if (line != ".PP" || last !~ /^\.SH/) print line >file
  last = line
}

function begin(name, summary) {
  file = folder "/" name ".3"
  put(".TH " escaped(name) " 3 \"\" \"zklock " version "\" \"zklock\"")
  # Names are not broken.
  put(".nh\n.ad l")
  put(".SH NAME")
  put(escaped(name) " \\- " escaped(summary))
}

# Everything in lines[first] to lines[last]: paragraphs, lists, indented code, and headings that are underlined.
function body(first, last,   at, line, in_code, ended) {
  ended = 1
  for (at = first; at <= last; at++) {
    line = lines[at]
    if (in_code && line != "" && line !~ /^    /) {
      put(".EE")
      in_code = 0
    }
    if (line == "") {
      if (in_code) put("")
      ended = 1
    } else if (lines[at + 1] ~ /^---+$/) {
      put(".SH " toupper(escaped(line)))
      at++
    } else if (line ~ /^    /) {
      if (!in_code) {
        put(".PP")
        put(".EX")
      }
      in_code = 1
      put(code(line))
    } else if (line ~ /^- /) {
      put(".IP \\(bu 2")
      put(prose(substr(line, 3)))
      ended = 0
    } else {
      if (ended) put(".PP")
      ended = 0
      sub(/^ +/, "", line)
      put(prose(line))
    }
  }
  if (in_code) put(".EE")
}

# The first sentence of a comment.
function summary_of(first, last,   at, text) {
  for (at = first; at <= last && lines[at] != "" && lines[at] !~ /^@/; at++) text = text (text == "" ? "" : " ") lines[at]
  if (match(text, /[.:] /)) text = substr(text, 1, RSTART - 1)
  sub(/[.:]$/, "", text)
  return text
}

# From `@param` to `@return`, which come last. An item of what is returned ends with a semicolon.
function tags(first, last,   at, line, begun, text, items, number) {
  for (at = first; at <= last; at++) {
    line = lines[at]
    if (line ~ /^@param/) {
      if (!begun++) put(".SH PARAMETERS")
      sub(/^@param(\[out\])? /, "", line)
      put(".TP")
      put(".I " escaped(substr(line, 1, index(line " ", " ") - 1)))
      put(prose(substr(line, index(line " ", " ") + 1)))
    } else if (line ~ /^@return/ || text != "") {
      sub(/^@return /, "", line)
      sub(/^ +/, "", line)
      text = text (text == "" ? "" : " ") line
    } else {
      sub(/^ +/, "", line)
      put(prose(line))
    }
  }
  if (text == "") return
  sub(/\.$/, "", text)
  put(".SH RETURN VALUE")
  number = split(text, items, /; /)
  for (at = 1; at <= number; at++) {
    put(".IP \\(bu 2")
    put(prose(items[at]))
  }
}

function comment_of(first, last,   at) {
  for (at = first; at <= last && lines[at] !~ /^@/; at++) continue
  put(".SH DESCRIPTION")
  body(first, at - 1)
  tags(at, last)
}

function finish(related) {
  put(".SH SEE ALSO")
  put(related == "" ? ".BR zklock (3)" : ".BR zklock (3),\n" related)
  close(file)
}

# The other functions for the same task.
function others(name,   number, names, at, text) {
  number = split(task[name], names, " ")
  for (at = 1; at <= number; at++)
    if (names[at] != name) text = text (text == "" ? "" : ",\n") ".BR " names[at] " (3)"
  return text
}

# A comment at the margin, and then what it is about.
/^\/\*\*?$/ { within = 1; count = 0; next }
within && /^ \*\/$/ {
  within = 0
  lines[count + 1] = ""
  if (!headed++) head()
  else waiting = 1
  next
}
within { line = $0; sub(/^ \* ?/, "", line); lines[++count] = line; next }

function head(   at, name, number, names, text) {
  # An entry of the index may have several lines.
  for (at = 1; at <= count; at++) {
    if (lines[at] ~ /^- To .*, see /) text = lines[at]
    else if (text != "") text = text " " lines[at]
    if (text ~ /\.$/) {
      sub(/.*, see /, "", text)
      gsub(/[,.]/, "", text)
      number = split(text, names, " ")
      for (name = 1; name <= number; name++) task[names[name]] = text
      text = ""
    }
  }
  text = lines[1]
  sub(/.* - /, "", text)
  begin("zklock", text)
  put(".SH SYNOPSIS\n.B #include <zklock.h>")
  # The second paragraph is about the file.
  for (at = 3; lines[at] != ""; at++) continue
  body(at, count)
  close(file)
}

# Members and values have comments of their own.
function members(   at, line, text, begun) {
  for (at = 2; at < declared; at++) {
    line = declaration[at]
    sub(/^ +/, "", line)
    if (line ~ /^\*\/|^\/\*\*/) continue
    if (line ~ /^\*/) {
      sub(/^\* ?/, "", line)
      text = text (text == "" ? "" : "\n") prose(line)
    } else {
      if (!begun++) put(".SH " (declaration[1] ~ /enum/ ? "VALUES" : "MEMBERS"))
      sub(/[,;]$/, "", line)
      put(".TP\n.B " code(line))
      put(text)
      text = ""
    }
  }
}

function page(   name, at) {
  name = declaration[declared]
  if (name ~ /^} /) sub(/^} /, "", name)
  else {
    name = declaration[1]
    if (match(name, /zklock_[a-z0-9_]+\)?\(/)) name = substr(name, RSTART, RLENGTH)
    else if (match(name, /zklock_[a-z0-9_]+;/)) name = substr(name, RSTART, RLENGTH)
  }
  gsub(/[^a-z0-9_]/, "", name)
  # It checks the header itself.
  if (name == "" || name ~ /have_32_bits/) return
  begin(name, summary_of(1, count))
  put(".SH SYNOPSIS\n.B #include <zklock.h>")
  put(".PP\n.EX")
  if (declaration[declared] ~ /^}/) put(code("typedef " (declaration[1] ~ /enum/ ? "enum " name : "struct") " { ... } " name ";"))
  else for (at = 1; at <= declared; at++) put(code(declaration[at]))
  put(".EE")
  comment_of(1, count)
  if (declaration[declared] ~ /^}/) members()
  finish(others(name))
}

waiting && /^#/ { waiting = 0 }
waiting && /^ZKLOCK_NODISCARD$/ { next }
waiting {
  declaration[++declared] = $0
  if (($0 ~ /;$/ && declaration[1] !~ /\{$/) || $0 ~ /^}/) {
    page()
    waiting = declared = 0
  }
}
