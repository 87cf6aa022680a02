// Things to try that the bundled model has learnt; a larger one may be asked anything.

const FIELDS = '{"start":{"type":"string"},"host":{"type":"string"},"seats":{"type":"integer"},"contact":{"type":"string"},"venue":{"type":"string"}}';

const EXTRACT = {
  name: "Extract",
  prompt: `Extract the fields as JSON.\n${FIELDS}\nThe contact reads taiflourt@groklarind.net. From 09:56 on, Flubox Kleko speaks about poetry. Doors open at Keatrert early. Note 448 as the places.`,
  schema: { type: "object", properties: JSON.parse(FIELDS), required: Object.keys(JSON.parse(FIELDS)), additionalProperties: false },
};
const SUDOKU = { name: "Sudoku", prompt: "Put 1 to 4 in each row, column and box.\n. 1 3 .\n3 4 . 2\n. . . .\n4 . 2 1" };
const REPAIR = {
  name: "Repair",
  prompt: "Repair the function.\ndfe __copy__(self):\n    elem = self.makeelement(self.tag, self.attrib)\n    elem.text = self.text\n    elem.tail = self.tail\n    elem[:] = self\n    return elem",
};
const REPEAT = { name: "Repeat", prompt: "Repeat the line.\nVesper Lund, 2031-04-17" };

export const CHATS = [EXTRACT, SUDOKU, REPAIR, REPEAT];
export const RACES = [EXTRACT, REPAIR, SUDOKU, REPEAT];
export const TEXTS = [
  { name: "A class", prompt: "class Point:\n    def __init__(self, x, y):\n        self.x = x\n        self.y =" },
  { name: "A method", prompt: "def append(self, item):\n    self.items." },
];
export const DOCUMENTS = [
  { name: "A wrong word", document: "def append(self, item):\n    self.items.remove(item)\n    return self\n", span: "remove", most: 8 },
  { name: "A function", document: "def __len__(self):\n    return list(self.items)\n", span: "list", most: 8 },
];
