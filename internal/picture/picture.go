// Package picture draws boxes and lines between them as SVG: rows that wrap as text
// does, so that no picture is wider than it may be, whatever is in it.
//
// It knows neither versions nor operators, and no font: a letter has the width
// of a cell, which no fixed-width font exceeds. Everything is an integer, and the
// same picture gives the same bytes. Nothing that it draws runs, loads or refers to
// anything. Start from [Picture], [Picture.SVG] and [Lane].
package picture

// Picture is what is drawn, from the top down.
type Picture struct {
	Title  string // heading, and the name for those who hear it
	Desc   string // what is to be seen, in words
	Groups []Group
	Notes  []string // below the groups
	Legend []Key    // below the notes; those that do not occur are left out
}

// Group is some lanes with a heading.
type Group struct {
	Title string // may be empty
	Lanes []Lane
}

// Lane is a frame with boxes.
type Lane struct {
	Title string
	Stack bool  // the boxes are below each other, each further in than the one that leads to it
	Boxes []Box // in reading order
	Links []Link
}

// Box is one box with text in it.
type Box struct {
	Name  string // the whole text, for a pointer that rests on the box
	Lines []Text // the first is the title
	Look  Look
	Depth int // how far in it is, in a stack
}

// Text is a piece of text.
type Text struct {
	S    string
	Warn bool
}

// Look is how a box is drawn.
type Look int

// The looks of boxes.
const (
	Plain  Look = iota
	Strong      // what it is all about
	Way         // on the way from there
	Faint       // what is passed over, or not there
)

// Stroke is how a line is drawn.
type Stroke int

// The strokes of lines.
const (
	Solid Stroke = iota
	Dashed
	Dotted
)

// Link is a line from one box to another with an arrow at its end. Links that lead
// to the same box and are drawn alike share a line.
type Link struct {
	From, To int // index of a box
	Stroke   Stroke
	Way      bool
	Label    string // what it is called where there is no room to draw it

	next bool // it goes straight to the box that follows
}

// Key explains one look or stroke.
type Key struct {
	Text   string
	Line   bool // it is of a stroke, else of a look
	Look   Look
	Stroke Stroke
}

// The measures, in pixels.
const (
	cell      = 8  // of a letter of 13 pixels, whose width is 0.6 of that in fixed-width fonts
	leading   = 18 // from line to line
	padX      = 10 // around the text of a box
	padY      = 7
	between   = 28 // boxes of a row, so that an arrow can be seen
	rowGap    = 16
	track     = 7  // between lines that run beside each other
	frame     = 12 // around the boxes of a lane
	laneGap   = 12
	gutter    = 14 // at the sides of a lane with several rows
	narrowest = 88 // box
	widest    = 300
	indent    = 26
	margin    = 16 // around a picture that stands alone
	deepest   = 5  // how often it is indented
)

type point struct{ x, y int }

// rect is a frame or a box with its place.
type rect struct{ x, y, w, h int }

// placed is a box with its place and the text that fits.
type placed struct {
	rect
	box   Box
	lines []Text
}

// stroke is a line: pieces that hang together, and where its arrow points to.
type stroke struct {
	link   Link
	pieces [][]point
	head   point
	down   bool // the arrow points down, else to the right
}

// label is text outside of boxes. Its place is the left end of its base line.
type label struct {
	point
	s    string
	kind string // class
}

// lane is a lane that is laid out, with its own corner as origin until it is moved.
type lane struct {
	rect
	title   []string
	boxes   []placed
	strokes []stroke
}

// scene is a picture that is laid out.
type scene struct {
	w, h   int
	lanes  []lane
	labels []label
	keys   []placedKey
}

type placedKey struct {
	rect
	key Key
}

func (l *lane) move(dx, dy int) {
	l.x, l.y = l.x+dx, l.y+dy
	for i := range l.boxes {
		l.boxes[i].x += dx
		l.boxes[i].y += dy
	}
	for i := range l.strokes {
		s := &l.strokes[i]
		s.head.x, s.head.y = s.head.x+dx, s.head.y+dy
		for _, piece := range s.pieces {
			for j := range piece {
				piece[j].x += dx
				piece[j].y += dy
			}
		}
	}
}
